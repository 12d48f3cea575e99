"""dwt: forward discrete wavelet transform of an image (spectral method)."""
