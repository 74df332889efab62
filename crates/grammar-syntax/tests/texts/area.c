float area(float width, float height) { return width * height; }

 int main() {
  float small = area(2, 3);
  float large = area(small + 1, -(4 + small) * 2);
  if (small <= large) { show(large); } else { show(small); }
  while (large >= 100) { large = large / 10; }
  return large; }
