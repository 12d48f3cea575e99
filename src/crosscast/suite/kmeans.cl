// k-means: every point joins the nearest of the centres. The host moves the centres between launches.
//
// invert_mapping  transposes the points, so that work-items side by side read floats side by side.
// kmeansPoint     finds the nearest centre of each point.
//
// One work-item a point in both; the last work-group may have more work-items than there are points.

kernel void invert_mapping(global const float *points, global float *by_feature, int n_points, int n_features)
{
    int point = get_global_id(0);
    if (point >= n_points)
        return;
    for (int feature = 0; feature < n_features; feature++)
        by_feature[feature * n_points + point] = points[point * n_features + feature];
}

kernel void kmeansPoint(global const float *by_feature, global const float *centres, global int *membership,
                        int n_points, int n_clusters, int n_features)
{
    int point = get_global_id(0);
    if (point >= n_points)
        return;
    int nearest = 0;
    float least = FLT_MAX;
    for (int cluster = 0; cluster < n_clusters; cluster++) {
        // The square orders centres as the distance does, and needs no root.
        float square = 0.0f;
        for (int feature = 0; feature < n_features; feature++) {
            float difference = by_feature[feature * n_points + point] - centres[cluster * n_features + feature];
            square += difference * difference;
        }
        if (square < least) {
            least = square;
            nearest = cluster;
        }
    }
    membership[point] = nearest;
}
