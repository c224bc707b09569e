/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded in another one's place. */
#include "churn_chain.h"
