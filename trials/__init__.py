"""Training: backbones, methods, tasks and the one loop; knows no Ray and no database."""
