//! Every message survives a round trip; nothing that arrives can do more than fail.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rag_core::chunking::{ChunkMethod, ChunkOptions, SizeUnit};
use rag_wire::*;
use std::io::Cursor;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), ".{0,40}", "\\PC{0,20}"]
}

fn lane() -> impl Strategy<Value = Lane> {
    prop_oneof![Just(Lane::Interactive), Just(Lane::Bulk)]
}

fn role() -> impl Strategy<Value = TextRole> {
    prop_oneof![Just(TextRole::Query), Just(TextRole::Passage)]
}

fn content() -> impl Strategy<Value = Content> {
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    prop_oneof![text().prop_map(Content::Text), bytes.prop_map(Content::Bytes)]
}

fn chunking() -> impl Strategy<Value = ChunkOptions> {
    let method = prop::sample::select(vec![
        ChunkMethod::Recursive,
        ChunkMethod::Section,
        ChunkMethod::ParentChild,
        ChunkMethod::Semantic,
    ]);
    let unit = prop_oneof![Just(SizeUnit::Tokens), Just(SizeUnit::Characters)];
    (method, unit, any::<[u32; 4]>(), any::<bool>()).prop_map(
        |(method, unit, [size, overlap, min_size, breakpoint_percentile], context)| ChunkOptions {
            method,
            unit,
            size,
            overlap,
            min_size,
            context,
            breakpoint_percentile,
        },
    )
}

fn prepare() -> impl Strategy<Value = Prepare> {
    let name = || prop::option::of(text());
    let names = (name(), name(), name(), name());
    (content(), names, chunking()).prop_map(|(content, (media_type, title, model, language), chunking)| {
        Prepare { content, media_type, title, model, language, chunking }
    })
}

fn chat() -> impl Strategy<Value = Chat> {
    let message = (text(), text()).prop_map(|(role, content)| ChatMessage { role, content });
    let name = || prop::option::of(text());
    let sampling = (-9.0f32..9.0, prop::option::of(0.0f32..1.0));
    (name(), prop::collection::vec(message, 0..4), any::<u32>(), sampling, name()).prop_map(
        |(model, messages, max_tokens, (temperature, top_p), json_schema)| Chat {
            model,
            messages,
            max_tokens,
            temperature,
            top_p,
            json_schema,
        },
    )
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), 0..6)
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        Just(Call::Status),
        Just(Call::Models),
        (prop::option::of(text()), role(), texts()).prop_map(|(model, role, texts)| Call::Embed {
            model,
            role,
            texts
        }),
        (prop::option::of(text()), text(), texts(), any::<bool>()).prop_map(
            |(model, query, passages, within_budget)| Call::Rerank { model, query, passages, within_budget }
        ),
        prepare().prop_map(Call::Prepare),
        (content(), prop::option::of(text()))
            .prop_map(|(content, media_type)| Call::Parse { content, media_type }),
        chat().prop_map(Call::Chat),
        (text(), texts()).prop_map(|(model, texts)| Call::CountTokens { model, texts }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    (lane(), texts(), prop::option::of(any::<u32>()), any::<bool>(), call()).prop_map(
        |(lane, principals, deadline_ms, local_only, call)| Request {
            lane,
            principals,
            deadline_ms,
            local_only,
            call,
        },
    )
}

fn failure() -> impl Strategy<Value = Failure> {
    let code = prop_oneof![
        Just(FailureCode::InvalidArgument),
        Just(FailureCode::UnknownModel),
        Just(FailureCode::NotLoaded),
        Just(FailureCode::Unsupported),
        Just(FailureCode::NotParsable),
        Just(FailureCode::LimitExceeded),
        Just(FailureCode::QueueFull),
        Just(FailureCode::Deadline),
        Just(FailureCode::NotAllowed),
        Just(FailureCode::Provider),
        Just(FailureCode::Internal),
        Just(FailureCode::Killed),
    ];
    (code, text(), prop::option::of(text()), prop::option::of(text()))
        .prop_map(|(code, message, detail, hint)| Failure { code, message, detail, hint })
}

fn reply() -> impl Strategy<Value = Reply> {
    let numbers = || prop::collection::vec(-1e6f32..1e6, 0..50);
    let completion = (text(), text(), prop::option::of(any::<u32>()), prop::option::of(any::<u32>()));
    prop_oneof![
        (text(), any::<u32>(), numbers()).prop_map(|(model, dimension, values)| Reply::Embeddings(
            Embeddings { model, dimension, values }
        )),
        (text(), numbers()).prop_map(|(model, scores)| Reply::Scores { model, scores }),
        completion.prop_map(|(text, model, prompt_tokens, completion_tokens)| {
            let failed = FailedModel { model: model.clone(), reason: text.clone() };
            let (asked_model, failed_models) = (model.clone(), vec![failed]);
            Reply::Completion(Completion {
                text,
                model,
                asked_model,
                failed_models,
                prompt_tokens,
                completion_tokens,
            })
        }),
        failure().prop_map(Reply::Failed),
    ]
}

/// Hands out one byte at a time, as a slow peer does.
struct Slow<'a>(&'a [u8]);

impl std::io::Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.len().min(buffer.len()).min(1);
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

/// A frame whose length says `length` whatever follows.
fn with_length(mut frame: Vec<u8>, length: usize) -> Vec<u8> {
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    frame
}

proptest! {
    #[test]
    fn requests_survive_a_round_trip(request in request()) {
        let frame = encode(&request).unwrap();
        prop_assert_eq!(read_frame::<Request>(&mut Cursor::new(&frame)).unwrap(), request.clone());
        prop_assert_eq!(read_frame::<Request>(&mut Slow(&frame)).unwrap(), request);
    }

    #[test]
    fn replies_survive_a_round_trip(reply in reply()) {
        let mut stream = Vec::new();
        write_frame(&mut stream, &reply).unwrap();
        prop_assert_eq!(read_frame::<Reply>(&mut Cursor::new(&stream)).unwrap(), reply);
    }

    #[test]
    fn frames_that_follow_each_other_stay_apart(requests in prop::collection::vec(request(), 1..5)) {
        let mut stream = Vec::new();
        for request in &requests {
            write_frame(&mut stream, request).unwrap();
        }
        let mut stream = Cursor::new(&stream);
        for request in requests {
            prop_assert_eq!(read_frame::<Request>(&mut stream).unwrap(), request);
        }
        prop_assert!(matches!(read_frame::<Request>(&mut stream), Err(FrameError::Closed)));
    }

    #[test]
    fn a_frame_cut_anywhere_is_an_error(request in request(), at in any::<prop::sample::Index>()) {
        let frame = encode(&request).unwrap();
        let cut = at.index(frame.len());
        let error = read_frame::<Request>(&mut Cursor::new(&frame[..cut])).unwrap_err();
        let expected = if cut == 0 { matches!(error, FrameError::Closed) } else { matches!(error, FrameError::Io(_)) };
        prop_assert!(expected, "{:?}", error);
    }

    #[test]
    fn bytes_after_a_message_are_an_error(request in request(), extra in prop::collection::vec(any::<u8>(), 1..9)) {
        let mut frame = encode(&request).unwrap();
        frame.extend(&extra);
        let length = frame.len() - 4;
        let error = read_frame::<Request>(&mut Cursor::new(with_length(frame, length))).unwrap_err();
        prop_assert!(matches!(error, FrameError::Malformed(_)), "{:?}", error);
    }

    #[test]
    fn a_length_that_promises_more_than_arrives_is_an_error(request in request(), more in 1usize..1000) {
        let frame = encode(&request).unwrap();
        let length = frame.len() - 4 + more;
        let error = read_frame::<Request>(&mut Cursor::new(with_length(frame, length))).unwrap_err();
        prop_assert!(matches!(error, FrameError::Io(_)), "{:?}", error);
    }

    #[test]
    fn any_payload_is_a_message_or_an_error(payload in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode::<Request>(&payload);
        let _ = decode::<Reply>(&payload);
        let _ = decode::<Settings>(&payload);
        let _ = decode::<Hello>(&payload);
    }
}

#[test]
fn a_length_over_the_limit_is_refused_before_anything_is_read() {
    for length in [MAX_FRAME_BYTES as u32 + 1, u32::MAX] {
        let error = read_frame::<Request>(&mut Cursor::new(length.to_le_bytes())).unwrap_err();
        assert!(matches!(error, FrameError::TooLong(found) if found == length as usize));
    }
    assert_eq!(frame_length((MAX_FRAME_BYTES as u32).to_le_bytes()).unwrap(), MAX_FRAME_BYTES);
}

#[test]
fn a_message_over_the_limit_is_not_written() {
    let texts = vec!["x".repeat(MAX_FRAME_BYTES + 1)];
    let mut stream = Vec::new();
    let written = write_frame(&mut stream, &Call::Embed { model: None, role: TextRole::Passage, texts });
    assert!(matches!(written, Err(FrameError::TooLong(_))));
    assert!(stream.is_empty());
}

#[test]
fn a_lying_count_inside_a_payload_is_an_error() {
    // Embed, no model, Query, then "so many texts" in the largest number that a count can be.
    let payload = [2, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert!(decode::<Call>(&payload).is_err());
}

#[test]
fn settings_survive_a_round_trip_and_do_not_show_the_key() {
    let settings = Settings {
        socket: "s".into(),
        model_folders: vec!["a".into(), "b".into()],
        onnxruntime: "o".into(),
        embedding_model: "e".into(),
        rerank_model: "r".into(),
        device: "auto".into(),
        threads: 1,
        bulk_threads: 2,
        memory_limit_mb: 3,
        queue_limit: 4,
        cache_mb: 5,
        cache_ttl_s: 6,
        parse: ParseLimits {
            max_document_bytes: 7,
            memory_mb: 8,
            cpu_seconds: 9,
            sandbox: "auto".into(),
            ocr: None,
        },
        llm_program: "p".into(),
        chat: Some(ChatModels {
            model: "m".into(),
            simple_model: Some("local/small".into()),
            fallback_models: vec!["other".into(), "local/spare".into()],
            endpoint: Some(ChatEndpoint {
                url: "http://127.0.0.1/v1".into(),
                api_key: Some("sesame".into()),
                timeout_ms: 10,
                retries: 11,
            }),
        }),
        allow_remote: true,
    };
    let frame = encode(&settings).unwrap();
    assert_eq!(read_frame::<Settings>(&mut Cursor::new(frame)).unwrap(), settings);
    assert!(!format!("{settings:?}").contains("sesame"));
    let chat = settings.chat.unwrap();
    assert_eq!(chat.local_models().collect::<Vec<_>>(), ["small", "spare"]);
}
