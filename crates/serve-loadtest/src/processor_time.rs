//! Processor time of this process.

/// Seconds of processor time this process has had, all threads, user and system.
#[cfg(unix)]
pub(crate) fn process_cpu_s() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9)
}

/// Seconds of processor time this process has had: not known here.
#[cfg(not(unix))]
pub(crate) fn process_cpu_s() -> Option<f64> {
    None
}
