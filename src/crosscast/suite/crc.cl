/* CRC-32 (polynomial 0xEDB88320, reflected), eight bytes at a time.
 *
 * Table k holds, for each byte, what it adds to the remainder k bytes later. Eight tables so give the
 * remainder after eight bytes as the exclusive or of eight look-ups, which do not wait for each other.
 * Each step needs the remainder of the step before, so one work-item does it all.
 */

#define SLICES 8
#define BYTE_VALUES 256

__kernel void crc32_slice8(__global const uchar *data, uint length, __constant uint *byte_table,
                           __global uint *crc)
{
    /* Made here, because eight tables in global memory would be a good part of a small working set. */
    __local uint table[SLICES][BYTE_VALUES];
    for (uint value = 0; value < BYTE_VALUES; value++) {
        uint later = byte_table[value];
        table[0][value] = later;
        for (int slice = 1; slice < SLICES; slice++) {
            later = (later >> 8) ^ byte_table[later & 255];
            table[slice][value] = later;
        }
    }

    __global const uint2 *words = (__global const uint2 *)data;
    uint remainder = 0xFFFFFFFFu;
    for (uint i = 0; i < length / 8; i++) {
        uint2 word = words[i];
        uint first = word.x ^ remainder;
        uint second = word.y;
        remainder = table[7][first & 255] ^ table[6][(first >> 8) & 255]
                  ^ table[5][(first >> 16) & 255] ^ table[4][first >> 24]
                  ^ table[3][second & 255] ^ table[2][(second >> 8) & 255]
                  ^ table[1][(second >> 16) & 255] ^ table[0][second >> 24];
    }
    for (uint i = length & ~7u; i < length; i++)
        remainder = (remainder >> 8) ^ table[0][(remainder ^ data[i]) & 255];
    crc[0] = ~remainder;
}
