"""What several patterns ask about a program: its iteration, its output, its reads, the names that it uses."""
