// SPDX-License-Identifier: Apache-2.0
#include "store/model/answer_facts.h"

#include <algorithm>

namespace flamed::store {

double AnswerFacts::mean_weight() const {
  double sum = 0;
  double shares = 0;
  for (const PeriodShare& part : periods) {
    sum += part.share * static_cast<double>(part.period_ns) / static_cast<double>(std::max<std::int64_t>(period_ns, 1));
    shares += part.share;
  }
  return shares > 0 ? sum / shares : 1;
}

}  // namespace flamed::store
