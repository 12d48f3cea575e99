/* Electrostatic potential that the atoms of a molecule cause at the vertices of its surface.
 *
 * One work-item computes one vertex: it moves the vertex out along the surface's normal, out of the
 * solute, and adds up what every atom contributes there, `near` * charge / distance and the constant
 * `far` * charge by which the solvent's answer differs from a plain Coulomb potential.
 */

/* atoms: x, y, z and charge of each. */
__kernel void calc_potential_single_step_dev(
    __global const float4 *restrict atoms,
    int atom_count,
    __global const float *restrict vertex_x,
    __global const float *restrict vertex_y,
    __global const float *restrict vertex_z,
    __global const float *restrict normal_x,
    __global const float *restrict normal_y,
    __global const float *restrict normal_z,
    int vertex_count,
    float projection,
    float near,
    float far,
    __global float *restrict potential)
{
    const int vertex = get_global_id(0);
    if (vertex >= vertex_count)
        return;
    const float x = vertex_x[vertex] + projection * normal_x[vertex];
    const float y = vertex_y[vertex] + projection * normal_y[vertex];
    const float z = vertex_z[vertex] + projection * normal_z[vertex];
    float sum = 0.0f;
    for (int i = 0; i < atom_count; ++i) {
        const float4 atom = atoms[i];
        const float dx = x - atom.x;
        const float dy = y - atom.y;
        const float dz = z - atom.z;
        const float distance = sqrt(dx * dx + dy * dy + dz * dz);
        sum += atom.w * (near / distance - far);
    }
    potential[vertex] = sum;
}
