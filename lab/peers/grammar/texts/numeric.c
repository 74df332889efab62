int gcd(int left, int right) {
    while (right != 0) {
        int rest = left - left / right * right;
        left = right;
        right = rest;
    }
    return left;
}

int power(int base, int exponent, int modulus) {
    int result = 1;
    int factor = base - base / modulus * modulus;
    while (exponent > 0) {
        int half = exponent / 2;
        if (exponent - half * 2 == 1) {
            result = result * factor - result * factor / modulus * modulus;
        }
        factor = factor * factor - factor * factor / modulus * modulus;
        exponent = half;
    }
    return result;
}

int isPrime(int candidate) {
    if (candidate < 2) {
        return 0;
    }
    for (int divisor = 2; divisor * divisor <= candidate; divisor = divisor + 1) {
        if (candidate - candidate / divisor * divisor == 0) {
            return 0;
        }
    }
    return 1;
}

float squareRoot(float value) {
    /* Newton's method, from above, until two guesses agree. */
    float guess = value + 1;
    float previous = 0;
    while (absolute(guess - previous) * 1000000 > guess) {
        previous = guess;
        guess = (guess + value / guess) / 2;
    }
    return guess;
}

float absolute(float value) {
    if (value < 0) {
        return -value;
    } else {
        return value;
    }
}

float integral(float from, float to, int steps) {
    float width = (to - from) / steps;
    float sum = (curve(from) + curve(to)) / 2;
    for (int step = 1; step < steps; step = step + 1) {
        sum = sum + curve(from + step * width);
    }
    return sum * width;
}

float curve(float x) {
    return ((3 * x - 2) * x + 7) * x - 11;
}

float bisect(float low, float high, int rounds) {
    for (round = 0; round < rounds; round = round + 1) {
        float middle = (low + high) / 2;
        if (curve(middle) <= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (low + high) / 2;
}

int fibonacci(int place) {
    int first = 0;
    int second = 1;
    for (int at = 0; at < place; at = at + 1) {
        int next = first + second;
        first = second;
        second = next;
    }
    return first;
}

int collatz(int number) {
    int steps = 0;
    while (number > 1) {
        int half = number / 2;
        if (half * 2 == number) {
            number = half;
        } else {
            number = 3 * number + 1;
        }
        steps = steps + 1;
    }
    return steps;
}

int digits(int number, int base) {
    int count = 1;
    while (number >= base) {
        number = number / base;
        count = count + 1;
    }
    return count;
}

int reverse(int number) {
    int reversed = 0;
    while (number != 0) {
        int rest = number / 10;
        reversed = reversed * 10 + (number - rest * 10);
        number = rest;
    }
    return reversed;
}

char grade(int points) {
    char letter = 65;
    if (points < 90) {
        letter = letter + 1;
        if (points < 75) {
            letter = letter + 1;
            if (points < 60) {
                letter = letter + 1;
            }
        }
    }
    return letter;
}

int dayOfWeek(int year, int month, int day) {
    /* Zeller's congruence: January and February
       belong to the year before. */
    if (month < 3) {
        month = month + 12;
        year = year - 1;
    }
    int century = year / 100;
    int inCentury = year - century * 100;
    int sum = day + 13 * (month + 1) / 5 + inCentury + inCentury / 4 + century / 4 + 5 * century;
    return sum - sum / 7 * 7;
}

void table(int rows, int columns) {
    for (int row = 1; row <= rows; row = row + 1) {
        for (int column = 1; column <= columns; column = column + 1) {
            print(row * column, width(row * column, 4));
        }
        newline();
    }
}

int width(int number, int least) {
    int needed = digits(number, 10);
    if (needed < least) {
        needed = least;
    }
    return needed;
}

int main() {
    int found = 0;
    for (int number = 2; number < 1000; number = number + 1) {
        if (isPrime(number) == 1) {
            found = found + 1;
            if (reverse(number) == number) {
                print(number, found);
            }
        }
    }
    float root = squareRoot(bisect(0, 10, 40) * bisect(0, 10, 40));
    show(root, integral(0, root, 100), -(root + 1) / (2 * root - 3));
    table(gcd(84, 36), power(7, 128, 13) + fibonacci(12) - collatz(27));
    report(dayOfWeek(2024, 2, 29), grade(digits(65536, 2) * 5));
    return found;
}
