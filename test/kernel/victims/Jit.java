// SPDX-License-Identifier: Apache-2.0

/** main > spinOuter > spinInner. */
public class Jit {
  static volatile int sink;

  static int spinInner(int rounds) {
    int x = 1;
    for (int i = 0; i < rounds; i++) x = x * 1103515245 + 12345;
    return x;
  }

  static int spinOuter(int rounds) {
    return spinInner(rounds) + 1;
  }

  public static void main(String[] arguments) {
    while (true) sink = spinOuter(1_000_000);
  }
}
