"""What is known of sizes, conditions and accesses in bounds."""
