/* Breadth-first search of a graph, one level of it a pair of launches; a work-item has one vertex.
 *
 * kernel1 goes from every vertex of the frontier to the neighbours that nobody has visited, and gives
 * them their depth. kernel2 makes these the next frontier, and tells the host that there is one.
 */

/* nodes: where a vertex' neighbours begin in `edges`, and how many there are. */
__kernel void kernel1(
    __global const int2 *restrict nodes,
    __global const int *restrict edges,
    __global uchar *restrict frontier,
    __global uchar *restrict reached,
    __global const uchar *restrict visited,
    __global int *restrict depth,
    int vertex_count)
{
    const int vertex = get_global_id(0);
    if (vertex >= vertex_count || !frontier[vertex])
        return;
    frontier[vertex] = 0;
    const int2 node = nodes[vertex];
    const int next_depth = depth[vertex] + 1;
    for (int i = node.x; i < node.x + node.y; ++i) {
        const int neighbour = edges[i];
        if (!visited[neighbour]) {
            /* Two vertices of the frontier may share a neighbour; both store the same. */
            depth[neighbour] = next_depth;
            reached[neighbour] = 1;
        }
    }
}

__kernel void kernel2(
    __global uchar *restrict frontier,
    __global uchar *restrict reached,
    __global uchar *restrict visited,
    __global int *restrict go_on,
    int vertex_count)
{
    const int vertex = get_global_id(0);
    if (vertex >= vertex_count || !reached[vertex])
        return;
    frontier[vertex] = 1;
    visited[vertex] = 1;
    reached[vertex] = 0;
    *go_on = 1;
}
