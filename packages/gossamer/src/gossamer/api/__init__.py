"""What the package offers for programs: one file for each public function."""
