// SPDX-License-Identifier: Apache-2.0
//
// A service on a JVM, without an end. In each second of the wall clock, in milliseconds: 0 to 200 scan(), called by
// reserve(); 600 to 700 restock(), which leaves garbage.
public class Stock {
  static final byte[][] SHELF = new byte[2_000][];
  static int next;
  static long sum;

  static void scan() {
    long found = sum;
    for (int i = 0; i < 20_000; i++) found += found ^ i; // the hot line
    sum = found;
  }

  static void reserve() {
    scan();
    sum++;
  }

  static void restock() {
    for (int i = 0; i < 100; i++) SHELF[next++ % SHELF.length] = new byte[10_000];
  }

  public static void main(String[] arguments) throws InterruptedException {
    for (;;) {
      long ms = System.currentTimeMillis() % 1000;
      if (ms < 200) reserve();
      else if (ms >= 600 && ms < 700) restock();
      else Thread.sleep(5);
    }
  }
}
