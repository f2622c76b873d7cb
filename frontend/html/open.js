(() => {
"use strict";
// Helpers of all parts. Times are picoseconds throughout; only what is shown is scaled.

const $ = id => document.getElementById(id);

const esc = s => String(s).replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[c]);

// "1.234 us": as many digits as tell neighbours apart
function time(ps, digits = 3) {
  const a = Math.abs(ps);
  if (a >= 1e9) return (ps / 1e9).toFixed(digits) + " ms";
  if (a >= 1e6) return (ps / 1e6).toFixed(digits) + " µs";
  if (a >= 1e3) return (ps / 1e3).toFixed(Math.min(digits, 1)) + " ns";
  return a === 0 ? "0" : ps.toFixed(0) + " ps";
}

function bytes(n) {
  if (n >= 1 << 30) return (n / (1 << 30)).toFixed(2) + " GiB";
  if (n >= 1 << 20) return (n / (1 << 20)).toFixed(2) + " MiB";
  if (n >= 1 << 10) return (n / (1 << 10)).toFixed(n % 1024 ? 1 : 0) + " KiB";
  return n + " B";
}

const percent = (a, b) => (b > 0 ? 100 * a / b : 0).toFixed(1) + " %";
const count = n => n.toLocaleString("en-US");
const clamp = (v, lo, hi) => Math.max(lo, Math.min(hi, v));

// First index in [0, n) for which test is true; test is false up to there.
function search(n, test) {
  let lo = 0, hi = n;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (test(mid)) hi = mid; else lo = mid + 1;
  }
  return lo;
}
