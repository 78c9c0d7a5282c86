//! Where models run: `auto`, `cpu`, `cuda` or `cuda:N`, resolved against what the machine has.

use crate::batch_limits::BatchLimits;
use crate::model::runtime;
use cudarc::driver::CudaContext;

/// Pairs that a search has reranked on the CPU, unless it says otherwise: some tenths of a second of a small model.
const CPU_PAIRS: usize = 10;

/// Pairs on a device made for it, and elsewhere, where it costs this machine nothing.
const DEVICE_PAIRS: usize = rag_wire::MAX_PAIR_BUDGET;

/// A device that models run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The processor.
    Cpu,
    /// An NVIDIA device by number.
    Cuda(usize),
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

/// The device in use, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The device.
    pub device: Device,
    /// One line, if the device differs from what was asked for.
    pub note: Option<String>,
    /// How large a batch may be.
    pub batch_limits: BatchLimits,
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requested {
    Auto,
    Cpu,
    Cuda(usize),
}

/// Pairs that a reranker on a device of this machine, or elsewhere, scores for a search that leaves their number to it.
pub(crate) fn pair_budget(device: Option<Device>) -> usize {
    if device == Some(Device::Cpu) { CPU_PAIRS } else { DEVICE_PAIRS }
}

/// Resolves the setting. Falls back to the CPU with a note; call it after ONNX Runtime has been loaded.
pub fn choose(setting: &str) -> Choice {
    let on_cpu = |note| Choice { device: Device::Cpu, note, batch_limits: BatchLimits::CPU };
    let (ordinal, asked) = match parse(setting) {
        Some(Requested::Cpu) => return on_cpu(None),
        Some(Requested::Auto) => (0, false),
        Some(Requested::Cuda(ordinal)) => (ordinal, true),
        None => {
            let setting: String = setting.chars().take(64).collect();
            return on_cpu(Some(format!("unknown device {setting:?}: using the CPU")));
        }
    };
    match probe(ordinal) {
        Ok(free) => match runtime::accepts_cuda(ordinal) {
            Ok(()) => {
                let batch_limits = BatchLimits::for_free_memory(free as u64);
                Choice { device: Device::Cuda(ordinal), note: None, batch_limits }
            }
            Err(e) => on_cpu(Some(format!(
                "cuda:{ordinal} is there, but ONNX Runtime cannot use it ({e}): using the CPU"
            ))),
        },
        Err(e) if asked => on_cpu(Some(format!("cuda:{ordinal} is not usable ({e}): using the CPU"))),
        Err(_) => on_cpu(None),
    }
}

fn parse(setting: &str) -> Option<Requested> {
    match setting {
        "auto" | "" => Some(Requested::Auto),
        "cpu" => Some(Requested::Cpu),
        "cuda" => Some(Requested::Cuda(0)),
        _ => Some(Requested::Cuda(setting.strip_prefix("cuda:")?.parse().ok().filter(|n| *n < 1024)?)),
    }
}

/// Free bytes of a device; in words, why it cannot be used.
#[allow(unsafe_code)]
fn probe(ordinal: usize) -> Result<usize, String> {
    // SAFETY: only asks the dynamic loader for libcuda, whose initialisers are safe to run; nothing else of the
    // driver is called unless it is there.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return Err("the machine has no libcuda".into());
    }
    let count = CudaContext::device_count().map_err(|e| e.to_string())?;
    if ordinal >= count.max(0) as usize {
        return Err(format!("the machine has {count} CUDA devices"));
    }
    let (free, _) =
        CudaContext::new(ordinal).and_then(|context| context.mem_get_info()).map_err(|e| e.to_string())?;
    Ok(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        let cases = [
            ("auto", Some(Requested::Auto)),
            ("cpu", Some(Requested::Cpu)),
            ("cuda", Some(Requested::Cuda(0))),
            ("cuda:3", Some(Requested::Cuda(3))),
            ("cuda:", None),
            ("cuda:-1", None),
            ("gpu", None),
        ];
        for (setting, expected) in cases {
            assert_eq!(parse(setting), expected, "{setting}");
        }
    }

    #[test]
    fn a_device_that_cannot_be_had_falls_back_to_the_cpu_with_one_note() {
        let choice = choose("cuda:999");
        assert_eq!(choice.device, Device::Cpu);
        assert!(choice.note.is_some_and(|note| note.contains("cuda:999") && note.contains("using the CPU")));
        assert_eq!(choose("cpu").note, None);
        assert!(choose("quantum").note.is_some());
    }

    #[test]
    fn pairs_are_few_only_where_they_take_this_machines_processor() {
        assert_eq!(pair_budget(Some(Device::Cpu)), 10);
        assert_eq!(pair_budget(Some(Device::Cuda(0))), 50);
        assert_eq!(pair_budget(None), 50);
    }
}
