// SPDX-License-Identifier: Apache-2.0
//
// Compiles its methods by running them, prints the stack of the line on which it then stays: the thread's number, then
// name, file and line of each of its own frames, innermost first, with tabs between them, and an empty line.
import java.io.File;

public class ShowOwnStack {
  static int calls;
  static boolean stays;
  final int depth;

  interface Step {
    int take(int value) throws Exception;
  }

  ShowOwnStack(int depth) {
    this.depth = depth;
  }

  int depth() {
    return depth;
  }

  static int stay(int value) throws Exception {
    if (stays) {
      show();
      Thread.sleep(600_000);
    }

    return value + 1;
  }

  static void show() throws Exception {
    System.out.println(new File("/proc/thread-self").getCanonicalFile().getName());
    for (StackTraceElement frame : Thread.currentThread().getStackTrace()) {
      if (!frame.getClassName().startsWith("ShowOwnStack") || frame.getMethodName().equals("show")) continue;
      // It stays one line later.
      int line = frame.getLineNumber() + (frame.getMethodName().equals("stay") ? 1 : 0);
      System.out.println(
          frame.getClassName() + "." + frame.getMethodName() + "\t" + frame.getFileName() + "\t" + line);
    }
    System.out.println();
    System.out.flush();
  }

  static class Worker {
    int ändern𝒳(Step step, int value) throws Exception {
      return step.take(
          value
              + 1);
    }
  }

  static int recurse(ShowOwnStack own, int value) throws Exception {
    if (value > own.depth()) {
      return new Worker().ändern𝒳(each -> {
        calls++;
        return stay(each);
      }, value);
    }
    int next = recurse(own, value + 1);
    return next;
  }

  public static void main(String[] arguments) throws Exception {
    ShowOwnStack own = new ShowOwnStack(3);
    show();
    for (int i = 0; i < 50_000; i++) recurse(own, 0);
    Thread.sleep(1500);
    stays = true;
    recurse(own, 0);
  }
}
