"""The demos, and the generators that only they need. They use Millstream as any other package does."""
