//! A chat model of this machine, in the shape of the other backends.

use super::{Backend, Conditions, Limits};
use crate::device::Device;
use crate::llm::LocalModels;
use rag_llm::MAX_CONTEXT;
use rag_wire::{Chat, Completion, Failure};
use std::sync::Arc;

/// The chat model in one folder.
pub(crate) struct LocalChatBackend {
    models: Arc<LocalModels>,
    name: String,
}

impl LocalChatBackend {
    /// The model in the folder of that name. It is not started yet.
    pub(crate) fn new(models: Arc<LocalModels>, name: &str) -> Self {
        Self { models, name: name.to_owned() }
    }
}

impl Backend for LocalChatBackend {
    fn limits(&self) -> Limits {
        Limits { one_by_one: true, ..Limits::new(Some(Device::Cpu), MAX_CONTEXT as usize) }
    }

    fn health(&self, _allow_remote: bool) -> Result<(), String> {
        self.models.check(&self.name).map_err(|failure| failure.message)
    }

    fn generate(&self, request: &Chat, conditions: &Conditions<'_>) -> Result<Completion, Failure> {
        self.models.generate(&self.name, request, conditions, &mut |_| {})
    }

    fn generate_by_parts(
        &self,
        request: &Chat,
        conditions: &Conditions<'_>,
        deliver: &mut dyn FnMut(&str),
    ) -> Result<Completion, Failure> {
        self.models.generate(&self.name, request, conditions, deliver)
    }
}
