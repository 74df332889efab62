// Primes by trial division.

int isPrime(int candidate) {
    int divisor = 2;
    while (divisor * divisor <= candidate) {
        int rest = candidate - candidate / divisor * divisor;
        if (rest == 0) {
            return 0;
        }
        divisor = divisor + 1;
    }
    return 1;
}

int main() {
    int found = 0;
    /* the first hundred */
    for (int i = 2; i < 100; i = i + 1) {
        if (isPrime(i) == 1) {
            report(i, found);
            found = found + 1;
        } else {
            skip(i);
        }
    }
    // every path has counted
    return found;
}
