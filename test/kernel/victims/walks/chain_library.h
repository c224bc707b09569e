/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLAMED_TEST_CHAIN_LIBRARY_H
#define FLAMED_TEST_CHAIN_LIBRARY_H

int library_calls_back(int (*callback)(int), int depth);
int library_does_nothing(int value);

#endif
