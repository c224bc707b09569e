// SPDX-License-Identifier: Apache-2.0
//
// "depth N": spins N calls below its loop. "mixed": what Java programs do, without an end.
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

public class Stacks {
  static long sink;

  static long spin() {
    long sum = 0;
    for (long end = System.nanoTime() + 2_000_000; System.nanoTime() < end; ) {
      for (int i = 0; i < 20_000; i++) sum += sum ^ i;
    }
    return sum;
  }

  static long down(int depth) {
    return depth == 0 ? spin() : down(depth - 1) + 1;
  }

  static int compare(Integer a, Integer b) {
    return Integer.compare(a ^ 0x55, b ^ 0x55);
  }

  static void mix(Random random) {
    Integer[] numbers = new Integer[5_000];
    for (int i = 0; i < numbers.length; i++) numbers[i] = random.nextInt();
    Arrays.sort(numbers, Stacks::compare);
    sink += Arrays.stream(numbers).mapToLong(n -> n % 7).filter(n -> n > 2).sum();
    for (int i = 0; i < 50; i++) {
      try {
        throw new IllegalStateException("number " + i);
      } catch (IllegalStateException e) {
        sink += e.getMessage().length();
      }
    }
    Map<String, byte[]> garbage = new HashMap<>();
    for (int i = 0; i < 2_000; i++) garbage.put("key " + i % 100, new byte[1_000]);
    sink += garbage.size();
    byte[] from = new byte[100_000];
    byte[] to = new byte[100_000];
    for (int i = 0; i < 20; i++) System.arraycopy(from, i, to, 0, 90_000);
  }

  public static void main(String[] arguments) {
    if (arguments[0].equals("depth")) {
      for (int depth = Integer.parseInt(arguments[1]); ; ) sink += down(depth);
    }
    for (Random random = new Random(1); ; ) mix(random);
  }
}
