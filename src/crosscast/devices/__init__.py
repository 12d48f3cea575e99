"""Facts of devices: data sheets, measurements, and limits of architectures."""
