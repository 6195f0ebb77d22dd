"""The search service: plans sweeps, decides, records, and computes EVP."""
