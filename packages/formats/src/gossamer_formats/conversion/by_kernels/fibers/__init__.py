"""The fibers of an axis: their lengths, offsets and coordinates."""
