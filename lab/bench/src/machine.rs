//! Facts of the machine and of this process, from the system. Linux says it all; elsewhere the
//! parts that are not known are `None`.

use serde::Serialize;

/// Machine of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor's model, as `/proc/cpuinfo` names it.
    pub cpu: Option<String>,
    /// Processors this process may run on.
    pub cores: usize,
}

impl Machine {
    /// This machine.
    pub fn here() -> Self {
        let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpu_info.lines().find(|line| line.starts_with("model name"));
        let cpu = model.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()));
        Self { cpu, cores: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

/// Bytes of the largest cache of the first processor.
pub(crate) fn last_level_cache_bytes() -> Option<usize> {
    let caches = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = caches.filter_map(|entry| {
        let text = std::fs::read_to_string(entry.ok()?.path().join("size")).ok()?;
        cache_size(text.trim())
    });
    sizes.max()
}

/// `48K` or `32M` or plain bytes.
fn cache_size(text: &str) -> Option<usize> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

/// Bytes that new allocations can have without others' being swapped out.
pub(crate) fn available_memory() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemAvailable:")
}

/// The most bytes this process has had in memory so far; `None` where the system does not tell.
pub(crate) fn peak_resident_bytes() -> Option<u64> {
    kilobytes("/proc/self/status", "VmHWM:")
}

fn kilobytes(file: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

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

/// Seconds of processor time this thread has had.
#[cfg(unix)]
pub(crate) fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Seconds since this was first asked, where the processor time of a thread is not known.
#[cfg(not(unix))]
pub(crate) fn thread_cpu_s() -> f64 {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_sizes_have_units() {
        let sizes = ["48K", "260M", "512", "", "xK"].map(cache_size);
        assert_eq!(sizes, [Some(48 << 10), Some(260 << 20), Some(512), None, None]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_tells_of_memory_and_time() {
        let block = vec![1_u8; 64 << 20];
        let peak = peak_resident_bytes().expect("VmHWM");
        assert!(peak > std::hint::black_box(&block).len() as u64, "{peak}");
        assert!(available_memory().expect("MemAvailable") > 0);
        assert!(process_cpu_s().expect("a clock") > 0.0);
    }
}
