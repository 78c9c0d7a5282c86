//! ONNX Runtime: loaded once per process, from the path in the settings.

use crate::device::Device;
use crate::log;
use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::memory::{AllocationDevice, AllocatorType, MemoryInfo, MemoryType};
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// ONNX Runtime allows one environment per process, and unloading it at exit crashes; so it stays in a static.
static ENVIRONMENT: OnceLock<Result<Environment, String>> = OnceLock::new();

/// Loads the library. The first call decides for the whole process; later ones repeat its outcome.
pub fn load(library: &str) -> Result<&'static Environment, String> {
    let open = || {
        // The loader would look beside the executable, and then in the system's folders, for a relative path.
        let path = std::path::absolute(library).map_err(|e| format!("{library}: {e}"))?;
        if !Path::new(&path).is_file() {
            return Err(format!("there is no file {}", path.display()));
        }
        let logger = |level: LogLevel, _: &str, _: &str, _: &str, message: &str| match level {
            LogLevel::Error | LogLevel::Fatal => log::warning(format_args!("onnxruntime: {message}")),
            _ => {}
        };
        let builder = ort::init_from(&path).map_err(|e| e.to_string())?;
        let builder = builder.with_name("rag-engine").with_telemetry(false).with_logger(Arc::new(logger));
        builder.build().map_err(|e| e.to_string())
    };
    ENVIRONMENT.get_or_init(open).as_ref().map_err(Clone::clone)
}

/// Its version, if it is loaded.
pub fn version() -> Result<String, String> {
    match ENVIRONMENT.get() {
        Some(Ok(_)) => Ok(version_of(ort::info()).to_owned()),
        Some(Err(reason)) => Err(reason.clone()),
        None => Err("not loaded yet".into()),
    }
}

/// The version in a line such as `ORT Build Info: git-branch=rel-1.31.1, git-commit-id=…`; the line without one.
fn version_of(info: &str) -> &str {
    let branch = info.split("git-branch=rel-").nth(1).and_then(|rest| rest.split([',', ' ']).next());
    branch.unwrap_or(info)
}

/// Opens a session on `threads` threads. They sleep when idle: spinning would take the database's cores. The bytes of
/// `addition` are read as if they stood behind those of the graph's file.
pub(crate) fn open(graph: &Path, addition: &[u8], device: Device, threads: usize) -> Result<Session, String> {
    let Some(Ok(environment)) = ENVIRONMENT.get() else { return Err("ONNX Runtime is not loaded".into()) };
    let mut builder = sleeping(environment, threads).map_err(|e| e.message().to_owned())?;
    if let Device::Cuda(ordinal) = device {
        builder = builder
            .with_execution_providers([cuda(ordinal)])
            .map_err(|e| format!("cuda:{ordinal}: {}", e.message()))?;
    }
    if addition.is_empty() {
        return builder.commit_from_file(graph).map_err(|e| e.message().to_owned());
    }
    let mut bytes = std::fs::read(graph).map_err(|e| format!("{}: {e}", graph.display()))?;
    bytes.extend_from_slice(addition);
    // Weights in files of their own lie beside a graph's file, and bytes lie nowhere.
    let folder = graph.parent().unwrap_or(Path::new(".")).to_string_lossy();
    let mut builder = builder
        .with_config_entry("session.model_external_initializers_file_folder_path", folder)
        .map_err(|e| e.message().to_owned())?;
    builder.commit_from_memory(&bytes).map_err(|e| e.message().to_owned())
}

/// Memory of this machine for what goes to a device and comes from it: on a GPU such that it copies by itself meanwhile.
pub(crate) fn host_memory(device: Device) -> ort::Result<MemoryInfo<'static>> {
    let (place, ordinal) = match device {
        Device::Cpu => (AllocationDevice::CPU, 0),
        Device::Cuda(ordinal) => (AllocationDevice::CUDA_PINNED, ordinal as i32),
    };
    MemoryInfo::new(place, ordinal, AllocatorType::Device, MemoryType::CPUOutput)
}

fn sleeping(environment: &Environment, threads: usize) -> ort::Result<SessionBuilder> {
    let builder = Session::builder(environment)?
        .with_intra_threads(threads)?
        .with_inter_threads(1)?
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_intra_op_spinning(false)?
        .with_inter_op_spinning(false)?
        // Patterns are kept per input shape, and texts have every length.
        .with_memory_pattern(false)?
        .with_log_level(LogLevel::Error)?;
    Ok(builder)
}

/// Whether this build of ONNX Runtime can open sessions on a CUDA device; else why not.
pub(crate) fn accepts_cuda(ordinal: usize) -> Result<(), String> {
    let Some(Ok(environment)) = ENVIRONMENT.get() else { return Err("ONNX Runtime is not loaded".into()) };
    let builder = Session::builder(environment).map_err(|e| e.to_string())?;
    builder.with_execution_providers([cuda(ordinal)]).map(drop).map_err(|e| e.message().to_owned())
}

fn cuda(ordinal: usize) -> ort::ep::ExecutionProviderDispatch {
    ort::ep::CUDA::default().with_device_id(ordinal as i32).build().error_on_failure()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_taken_from_the_build_line() {
        assert_eq!(
            version_of("ORT Build Info: git-branch=rel-1.31.1, git-commit-id=1, build type=Release"),
            "1.31.1"
        );
        assert_eq!(version_of("something else"), "something else");
    }

    #[test]
    fn a_missing_library_is_named() {
        let error = load("/nonexistent/libonnxruntime.so").err();
        assert!(error.is_some_and(|e| e.contains("/nonexistent/libonnxruntime.so")));
    }
}
