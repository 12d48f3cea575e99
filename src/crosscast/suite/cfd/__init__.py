"""Flow of a compressible gas over a mesh."""
