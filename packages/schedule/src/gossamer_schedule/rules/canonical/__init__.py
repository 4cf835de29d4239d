"""Normal forms of programs, in which rules match patterns."""
