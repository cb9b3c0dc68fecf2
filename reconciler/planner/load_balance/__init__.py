"""Balance of disks and network beside counts: prices, columns that pay, whole placements, one bound."""
