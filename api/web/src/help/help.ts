// SPDX-License-Identifier: Apache-2.0
// The page of explanations follows the theme; all else in it is text.
import "../tokens.css";
import "./help.css";
import "../theme";
