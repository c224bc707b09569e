// SPDX-License-Identifier: Apache-2.0
//
// Calls spin() again and again, until all that leads to it is compiled, then prints the stack in which it stays most of
// the time: name, file and line of each frame, innermost first, with tabs between them, and an empty line.
// Usage: JavaGolden MODE [TURNS]    TURNS: of spin()'s loop in a call
import java.util.Arrays;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

public class JavaGolden {
  static long sink;
  static boolean shows;
  private final long turns;

  JavaGolden(long turns) {
    this.turns = turns;
  }

  interface Shape {
    int area(JavaGolden golden);
  }

  static class Square implements Shape {
    public int area(JavaGolden golden) {
      return spin(golden.turns());
    }
  }

  static class Circle implements Shape {
    public int area(JavaGolden golden) {
      return 3 * spin(golden.turns());
    }
  }

  long turns() {
    return turns;
  }

  static void show() {
    StringBuilder text = new StringBuilder();
    for (StackTraceElement frame : Thread.currentThread().getStackTrace()) {
      if (frame.getMethodName().equals("show") || frame.getMethodName().equals("getStackTrace")) continue;
      text.append(frame.getClassName()).append('.').append(frame.getMethodName());
      text.append('\t').append(frame.getFileName()).append('\t').append(frame.getLineNumber()).append('\n');
    }
    System.out.println(text);
    System.out.flush();
  }

  static int spin(long turns) {
    if (shows) show(); long x = sink; for (long i = 0; i < turns; i++) x = x * 31 + (x >> 7 ^ i); sink = x; return (int) x;
  }

  // As spin(), but in two lines.
  static int lines(JavaGolden golden) {
    if (shows) show();
    long x = sink;
    for (long i = 0; i < golden.turns; i++) {
      x = x * 31 + 1;
      x += x >> 7 ^ i;
    }
    sink = x;
    return (int) x;
  }

  static int plain(JavaGolden golden) {
    int value = outer(golden);
    return value + 1;
  }

  static int outer(JavaGolden golden) {
    return inner(golden) * 3;
  }

  static int inner(JavaGolden golden) {
    int before = (int) golden.turns();
    return before + spin(golden.turns());
  }

  static int recursion(JavaGolden golden, int depth) {
    if (depth == 0) return spin(golden.turns());
    return recursion(golden, depth - 1) + 1;
  }

  static int lambda(JavaGolden golden) {
    IntUnaryOperator step = each -> spin(golden.turns()) + each;
    return step.applyAsInt(4);
  }

  static int stream(JavaGolden golden) {
    return IntStream.range(0, 1).map(each -> each + spin(golden.turns())).sum();
  }

  static final Shape[] SHAPES = {new Square(), new Circle(), new Square()};

  static int shapes(JavaGolden golden, int number) {
    return SHAPES[number % 3].area(golden);
  }

  static int sorted(JavaGolden golden) {
    Integer[] numbers = {2, 1};
    Arrays.sort(numbers, (a, b) -> {
      int order = spin(golden.turns());
      return a - b + order * 0;
    });
    return numbers[0];
  }

  static int run(String mode, JavaGolden golden) {
    switch (mode) {
      case "plain":
        return plain(golden);
      case "recursion":
        return recursion(golden, 20);
      case "lines":
        return lines(golden);
      case "lambda":
        return lambda(golden);
      case "stream":
        return stream(golden);
      case "interface":
        return shapes(golden, 0);
      case "sorted":
        return sorted(golden);
      default:
        throw new IllegalArgumentException(mode);
    }
  }

  public static void main(String[] arguments) throws Exception {
    String mode = arguments[0];
    JavaGolden quick = new JavaGolden(100);
    for (int i = 0; i < 60_000; i++) {
      if (i % 4 == 0) shapes(quick, i);
      run(mode, quick);
    }
    JavaGolden golden = new JavaGolden(arguments.length > 1 ? Long.parseLong(arguments[1]) : 4_000_000);
    for (int i = 0; i < 50; i++) run(mode, golden);
    shows = true;
    run(mode, quick);
    shows = false;
    for (int i = 0; i < 20_000; i++) run(mode, quick);
    for (;;) run(mode, golden);
  }
}
