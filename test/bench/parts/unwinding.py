# SPDX-License-Identifier: Apache-2.0
"""The cost of a sample in the kernel by the depth of the user stack, and the share of real programs' whole stacks."""

import shutil

from parts.part import Part
from support.figures import percent, table
from support.program import run_json
from support.skip import Skip


class Unwinding(Part):
    name = "unwind"
    about = "one program, stacks of 10 to 120 frames, three walks in turn"

    def measure(self, how):
        return run_json([how.built("test/bench/unwind/unwind_bench"), 5 if not how.is_quick else 1,
                         1000 if not how.is_quick else 200], how)

    def section(self, results, aims):
        unwind = results.get(self.name)
        if unwind is None:
            return ""
        depths = ("10", "30", "60", "120")

        def row(name, walk):
            return (name, *(f"{walk['ns_per_sample'][depth]['median']:.0f}" for depth in depths), f"{walk['ns_per_frame']:.0f}")

        return f"""## Unwinding

The kernel program's time per sample in ns, by the number of user frames: one recursive program, built with and without
frame pointers, sampled {unwind["hertz"]} times a second by each program in turn; medians of {unwind["repetitions"]} rounds. The slope is between 10 and
120 frames. By tables {100 * unwind["tables"]["whole_share"]:.1f} % of the stacks of 120 frames were whole. At 30 frames the tables cost {unwind["ratio_at_30_frames"]:.2f} times what
`bpf_get_stack` does.

""" + table(("", *depths, "ns per frame"),
            [row("flamed, unwind tables, no frame pointers in the program", unwind["tables"]),
             row("only bpf_get_stack and a perf buffer", unwind["get_stack"]),
             row("flamed, frame pointers", unwind["frame_pointers"])])


class Stacks(Part):
    name = "stacks"
    about = "Debian's programs, one after the other, compared with perf"

    def measure(self, how):
        if shutil.which("perf") is None:
            raise Skip("there is no perf here (Debian: linux-perf)")
        return run_json(["/usr/bin/python3", "test/bench/mixed/mixed_bench.py", how.flamed, 6 if not how.is_quick else 2], how)

    def section(self, results, aims):
        mixed = results.get(self.name)
        if mixed is None:
            return ""
        head = ("program", "samples", "whole by tables", "otherwise", "at first", "whole by frame pointers", "whole by perf", "stacks agree",
                "steps agree", "perf with itself, stacks", "steps", "ns per sample")
        rows = [stacks_row(name, program) for name, program in mixed["programs"].items()]
        return f"""## Whole stacks

Programs from Debian's packages, {mixed["seconds"]} s each, sampled at the same time by flamed with unwind tables, by flamed with
frame pointers only, and by `perf record --call-graph dwarf`. Before that each has run for {mixed["warm_up_seconds"]} s, since flamed builds tables of
the code that it samples: *at first* is the share that was whole by tables in that time. Shares in %. *Whole*: down to the
process's or thread's entry; *otherwise* has the other stacks' reasons as in `quality`. *Agreement*, if both are whole: the
share of flamed's stacks that perf saw too, or of which perf saw all steps from caller to callee; and the share of single
steps. Beside it is the agreement of perf's second half with its first: the difference to 100 % is chance, in programs with
many rare stacks.

{table(head, rows)}

All programs together: {percent(mixed["tables"]["whole_share"])} % whole by tables, {percent(mixed["frame_pointers"]["whole_share"])} % by frame pointers. A JVM keeps frame
pointers in compiled code only with `-XX:+PreserveFramePointer`. Without it such stacks end there and are counted as
`no_unwind_information`. perf cannot unwind code of JIT compilers at all. The last column is the kernel program's time on the
whole machine while perf copied stacks beside it: an upper bound."""


def stacks_row(name, program):
    samples = program["tables"]["samples"]
    reasons = ", ".join(f"{reason} {percent(count / samples)}" for reason, count in
                        sorted(program["tables"]["truncated"].items(), key=lambda item: -item[1]))
    agreement = program["agreement"] or {}
    return (name, samples, percent(program["tables"]["whole_share"]), reasons, percent(program["tables"]["whole_share_at_first"]),
            percent(program["frame_pointers"]["whole_share"]), percent(program["perf"]["whole_share"]),
            percent(agreement.get("flamed_in_perf")), percent(agreement.get("flamed_steps_in_perf"), 2),
            percent(agreement.get("perf_in_itself")), percent(agreement.get("perf_steps_in_itself"), 2),
            f"{program['bpf_ns_per_sample']:.0f}")


PARTS = [Unwinding(), Stacks()]
