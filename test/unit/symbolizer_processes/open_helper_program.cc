// SPDX-License-Identifier: Apache-2.0
//
// A program that only opens files for other processes.
#include "symbolizer/opener/open_helper.h"

int main(int argc, char** argv) { return flamed::symbolizer::run_open_helper_if_asked(argc, argv).value_or(2); }
