/* Three microbenchmarks (Moolchandani, Kumar and Sarangi 2022, section 5.1.4), told apart by what they read and write.
 *
 * A work-group has a part of each image, and its work-items take every so many-th vector of it: one
 * work-item a group reads in a row, as a CPU likes it, and many read side by side, as a GPU likes it.
 */

#define MADE 0x1D872B41u

uint pixel_of(ulong place)
{
    uint value = (uint)place * 2654435761u;
    return value ^ (value >> 15);
}

/* Fill the pool of images where they stay, if that has not been done: copies would be co-runners too. */
__kernel void make_images(__global uint *pool, ulong pixels, __global const uint *made)
{
    if (made[0] == MADE)
        return;
    for (ulong i = get_global_id(0); i < pixels; i += get_global_size(0))
        pool[i] = pixel_of(i);
}

#define PART(vectors)                                                                              \
    uint part = ((vectors) + get_num_groups(0) - 1) / get_num_groups(0);                           \
    uint first = get_group_id(0) * part;                                                           \
    uint end = min(first + part, (vectors));

/* Medium and low: read an image, and increment an element of an array, in every iteration.
 * A stride of 0 is the same image again; the compiler does not know it. */
__kernel void read_images(__global const uint16 *pool, uint vectors, uint images, uint stride,
                          uint iterations, __global const uint *elements, __global uint *sums,
                          __global uint *made)
{
    PART(vectors)
    uint16 sum = (uint16)(0);
    uint temporary = 0;
    for (uint iteration = 0; iteration < iterations; iteration++) {
        uint number = iteration % images;
        __global const uint16 *image = pool + (ulong)number * stride;
        for (uint i = first + get_local_id(0); i < end; i += get_local_size(0))
            sum += image[i];
        temporary += elements[number] + 1;
    }
    uint8 eight = sum.lo + sum.hi;
    uint4 four = eight.lo + eight.hi;
    sums[get_global_id(0)] = four.x + four.y + four.z + four.w + temporary;
    if (get_global_id(0) == 0)
        made[0] = MADE;
}

/* High: add the pixels of an image to an array, and store that in another, in every iteration; the
 * arrays change places, so that no iteration is in vain. */
__kernel void add_images(__global const uint16 *pool, uint vectors, uint images, uint iterations,
                         __global uint16 *even, __global uint16 *odd, __global uint *made)
{
    PART(vectors)
    for (uint iteration = 0; iteration < iterations; iteration++) {
        __global const uint16 *image = pool + (ulong)(iteration % images) * vectors;
        __global const uint16 *from = iteration % 2 ? odd : even;
        __global uint16 *to = iteration % 2 ? even : odd;
        uint kept = iteration ? 0xFFFFFFFFu : 0;
        for (uint i = first + get_local_id(0); i < end; i += get_local_size(0))
            to[i] = (from[i] & kept) + image[i];
    }
    if (get_global_id(0) == 0)
        made[0] = MADE;
}
