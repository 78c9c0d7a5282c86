//! Takes a cluster away when its test process ends, however it ends.
//!
//! A cluster in a `static` is never dropped and a killed test process drops nothing, so a small shell waits
//! for the end of its standard input, whose other end only the test process holds.
//!
//! Where `RAG_TEST_LIMIT` says after how many seconds, it waits no longer than that: a test that waits for a server that
//! waits for the test fails then, where it would have stood for ever.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Stops whatever works in `$1`, politely first, and removes it; after `$2` seconds, if that is not empty, at the latest.
const SCRIPT: &str = r#"
${2:+timeout "$2"} cat >/dev/null
[ $? -ne 124 ] || echo "the tests of $1 have not ended in $2 s: it is taken away" >&2
postmaster=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
runs() { [ -n "$postmaster" ] && [ "$(readlink "/proc/$postmaster/cwd")" = "$1/data" ]; }
if runs "$1"; then
    kill -QUIT "$postmaster"
    for _ in $(seq 100); do runs "$1" || break; sleep 0.1; done
fi
for _ in 1 2 3 4 5; do
    for link in /proc/[0-9]*/cwd; do
        case "$(readlink "$link" 2>/dev/null)" in
            "$1" | "$1"/*) pid=${link#/proc/}; kill -KILL "${pid%/cwd}" ;;
        esac
    done
    rm -rf -- "$1" && break
    sleep 0.2
done
"#;

#[derive(Debug)]
pub(crate) struct Guardian {
    shell: Child,
}

impl Guardian {
    /// Watches over `folder` until [`Guardian::finish`] or the end of this process.
    pub(crate) fn of(folder: &Path) -> Self {
        use std::os::unix::process::CommandExt;
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "guardian"])
            .arg(folder)
            .arg(std::env::var("RAG_TEST_LIMIT").unwrap_or_default())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // An interrupt from the terminal ends the tests; their clusters still have to be taken away.
            .process_group(0)
            .spawn()
            .unwrap();
        Self { shell }
    }

    /// Takes the cluster away now.
    pub(crate) fn finish(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
