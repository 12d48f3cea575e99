kernel void nbody(global const float4 *body, global float4 *acceleration, int n, float softening) {
  size_t i = get_global_id(0);
  float3 here = body[i].xyz;
  float3 sum = (float3)(0.0f);
  for (int j = 0; j < n; j++) {
    float4 other = body[j];
    float3 away = other.xyz - here;
    float distance2 = dot(away, away) + softening;
    float inverse = 1.0f / sqrt(distance2);
    sum += away * (other.w * inverse * inverse * inverse);
  }
  acceleration[i] = (float4)(sum, 0.0f);
}
