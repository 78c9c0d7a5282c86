//! What an ONNX file is made of: messages in protocol buffers, written field by field.

/// Elements in single precision.
pub const FLOAT: u64 = 1;

/// Elements that are whole numbers of 64 bits.
pub const INT64: u64 = 7;

/// A message, or the end of one: bytes behind a message add to its fields.
#[derive(Debug, Default, Clone)]
pub struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// With a field that is a number.
    pub fn number(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    /// With a field of bytes.
    pub fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// With a field of text.
    pub fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// With a field that is a message.
    pub fn message(self, field: u64, message: Message) -> Self {
        self.bytes(field, &message.0)
    }

    /// Its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A node with one output, and a number for an attribute where it has one.
pub fn node(operator: &str, inputs: &[&str], output: &str, attribute: Option<(&str, u64)>) -> Message {
    let node = inputs.iter().fold(Message::default(), |node, input| node.text(1, input));
    let node = node.text(2, output).text(4, operator);
    match attribute {
        Some((name, value)) => {
            node.message(5, Message::default().text(1, name).number(3, value).number(20, 2))
        }
        None => node,
    }
}

/// The declaration of an input or output. Its dimensions are sizes, or names of what is known at a run.
pub fn value(name: &str, element: u64, dimensions: &[&str]) -> Message {
    let shape = dimensions.iter().fold(Message::default(), |shape, name| {
        let dimension = match name.parse() {
            Ok(size) => Message::default().number(1, size),
            Err(_) => Message::default().text(2, name),
        };
        shape.message(1, dimension)
    });
    let tensor = Message::default().number(1, element).message(2, shape);
    Message::default().text(1, name).message(2, Message::default().message(1, tensor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_format_wants() {
        let inner = Message::default().number(1, 300);
        let message = Message::default().text(2, "testing").message(3, inner);
        let expected = [b"\x12\x07testing".as_slice(), b"\x1a\x03\x08\xac\x02"].concat();
        assert_eq!(message.into_bytes(), expected);
    }
}
