"""Arrays that become what is known of them, parameters that nothing uses."""
