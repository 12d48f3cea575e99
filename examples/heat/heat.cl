/* Heat in a plate, by explicit steps in time; one work-item has one point.
 *
 * heat_step moves each point towards the mean of its four neighbours. Points on the edge keep their
 * temperature. Work-items beyond the plate do nothing.
 */

__kernel void heat_step(
    __global const float *restrict old,
    __global float *restrict new,
    int rows,
    int columns,
    float rate)
{
    const int column = get_global_id(0);
    const int row = get_global_id(1);
    if (row >= rows || column >= columns)
        return;

    const int here = row * columns + column;
    float temperature = old[here];
    if (row > 0 && row < rows - 1 && column > 0 && column < columns - 1) {
        const float around = old[here - columns] + old[here + columns] + old[here - 1] + old[here + 1];
        temperature += rate * (around - 4.0f * temperature);
    }
    new[here] = temperature;
}
