"""srad: speckle-reducing anisotropic diffusion of an image (structured grid)."""
