// SPDX-License-Identifier: Apache-2.0
// The help page follows the theme. Everything else in it is text.
import "../tokens.css";
import "./help.css";
import "../theme";
