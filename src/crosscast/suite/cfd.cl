/* Flow of a compressible gas: the Euler equations by finite volumes on an unstructured mesh.
 *
 * An element's state is five conserved quantities: density, momentum in three directions, energy. They
 * are stored quantity after quantity, so that neighbouring work-items, which have neighbouring elements,
 * read neighbouring numbers. The same holds for an element's four faces: neighbour, and normal vector
 * (outward, as long as the face is large).
 *
 * Time goes forward by three stages of Runge and Kutta, each from the state at the start of the step.
 */

#define QUANTITIES 5
#define FACES 4
#define GAMMA 1.4f

/* What stands for a neighbour where there is none. */
#define WALL -1
#define FAR_FIELD -2

typedef struct {
    float density;
    float energy;
    float3 momentum;
    float3 velocity;
    float pressure;
    float sound; /* speed of it */
} State;

static State state_of(__global const float *variables, int element, int elements)
{
    State s;
    s.density = variables[element];
    s.momentum.x = variables[element + elements];
    s.momentum.y = variables[element + 2 * elements];
    s.momentum.z = variables[element + 3 * elements];
    s.energy = variables[element + 4 * elements];
    s.velocity = s.momentum / s.density;
    s.pressure = (GAMMA - 1.0f) * (s.energy - 0.5f * dot(s.momentum, s.velocity));
    s.sound = sqrt(GAMMA * s.pressure / s.density);
    return s;
}

__kernel void initialize_variables(__global float *variables, __global const float *far_field, int elements)
{
    int element = get_global_id(0);
    if (element >= elements)
        return;
    for (int q = 0; q < QUANTITIES; q++)
        variables[element + q * elements] = far_field[q];
}

/* Longest stable time step over volume, for each element its own: only the steady flow matters. */
__kernel void compute_step_factor(__global const float *variables, __global const float *areas,
                                  __global float *step_factors, int elements)
{
    int element = get_global_id(0);
    if (element >= elements)
        return;
    State s = state_of(variables, element, elements);
    step_factors[element] = 0.5f / (sqrt(areas[element]) * (length(s.velocity) + s.sound));
}

/* What flows out of each element: over each face the mean of both sides' fluxes, and as much dissipation
 * as the fastest wave needs (Rusanov). */
__kernel void compute_flux(__global const float *variables, __global const int *neighbours,
                           __global const float *normals, __global const float *far_field,
                           __global float *fluxes, int elements)
{
    int element = get_global_id(0);
    if (element >= elements)
        return;
    State here = state_of(variables, element, elements);
    float density_flux = 0.0f;
    float energy_flux = 0.0f;
    float3 momentum_flux = (float3)(0.0f);
    for (int face = 0; face < FACES; face++) {
        float3 normal = (float3)(normals[element + (3 * face) * elements],
                                 normals[element + (3 * face + 1) * elements],
                                 normals[element + (3 * face + 2) * elements]);
        int neighbour = neighbours[element + face * elements];
        if (neighbour == WALL) {
            momentum_flux += here.pressure * normal;
            continue;
        }
        State there = neighbour == FAR_FIELD ? state_of(far_field, 0, 1)
                                             : state_of(variables, neighbour, elements);
        float out_here = dot(here.velocity, normal);
        float out_there = dot(there.velocity, normal);
        float size = length(normal);
        float fastest = max(fabs(out_here) + here.sound * size, fabs(out_there) + there.sound * size);
        density_flux += 0.5f * (here.density * out_here + there.density * out_there
                                - fastest * (there.density - here.density));
        momentum_flux += 0.5f * (here.momentum * out_here + there.momentum * out_there
                                 + (here.pressure + there.pressure) * normal
                                 - fastest * (there.momentum - here.momentum));
        energy_flux += 0.5f * ((here.energy + here.pressure) * out_here
                               + (there.energy + there.pressure) * out_there
                               - fastest * (there.energy - here.energy));
    }
    fluxes[element] = density_flux;
    fluxes[element + elements] = momentum_flux.x;
    fluxes[element + 2 * elements] = momentum_flux.y;
    fluxes[element + 3 * elements] = momentum_flux.z;
    fluxes[element + 4 * elements] = energy_flux;
}

/* One stage; `stages_left` counts this one. */
__kernel void time_step(__global const float *old_variables, __global const float *step_factors,
                        __global const float *fluxes, __global float *variables,
                        int stages_left, int elements)
{
    int element = get_global_id(0);
    if (element >= elements)
        return;
    float factor = step_factors[element] / stages_left;
    for (int q = 0; q < QUANTITIES; q++) {
        int i = element + q * elements;
        variables[i] = old_variables[i] - factor * fluxes[i];
    }
}
