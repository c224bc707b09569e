/* SPDX-License-Identifier: Apache-2.0 */
#include "known_chain.h"

static void nothing(void* argument) { (void)argument; }

int main(void) {
  return known_chain_deep(3, nothing, 0) + known_chain_realigned(3, nothing, 0) + known_chain_qsort(nothing, 0) +
         known_chain_signal(nothing, 0) + known_chain_thread(nothing, 0);
}
