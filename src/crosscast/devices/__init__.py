"""What is known of devices: data sheets, what was measured on them, and what their architectures hold."""
