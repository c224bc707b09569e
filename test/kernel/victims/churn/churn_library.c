/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded at another one's addresses. */
#include "churn_chain.h"
