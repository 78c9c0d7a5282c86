//! Names that are known as such, and words that are none.

use super::entity::Kind;

/// Products, programs, protocols and languages, as they are written.
const SOFTWARE: &str = "\
    PostgreSQL Postgres psql initdb createdb dropdb createuser dropuser pgbench postmaster vacuumdb reindexdb clusterdb \
    ecpg libpq pgcrypto PostGIS TimescaleDB Citus PgBouncer Patroni MySQL MariaDB SQLite Oracle MongoDB Redis Cassandra \
    Elasticsearch OpenSearch Kafka RabbitMQ Zookeeper Hadoop Spark Airflow Linux Windows macOS Solaris FreeBSD OpenBSD \
    NetBSD Ubuntu Debian Fedora CentOS Android iOS Docker Kubernetes Podman Ansible Terraform Jenkins GitLab GitHub Git \
    nginx Apache Tomcat HAProxy Envoy Python Java JavaScript TypeScript Perl Tcl Ruby Rust Kotlin Fortran COBOL MATLAB \
    OpenSSL GnuTLS OpenSSH LDAP Kerberos GSSAPI SSPI RADIUS OAuth SAML systemd SELinux AppArmor Bison Flex LLVM Clang \
    GCC Meson CMake Prometheus Grafana Nagios Zabbix Splunk SAP Excel SharePoint Outlook Modbus PROFINET PROFIBUS \
    EtherCAT CANopen OPC-UA MQTT SCADA";

/// Last words of the names of software, in the singular.
pub(super) const SOFTWARE_HEADS: &str = "Server|Client|Gateway|Database|Engine|Service|Agent|Framework|Library|Suite|Studio|Platform|Protocol|Driver|\
     Connector|Broker|Proxy|Scheduler|Daemon|Extension|Module|API|SDK|Toolkit|Wrapper|Manager|Portal";

/// Last words of the names of devices and their parts.
pub(super) const HARDWARE_HEADS: &str = "Router|Switch|Sensor|Pump|Motor|Valve|Board|Camera|Turbine|Compressor|Generator|Inverter|Battery|Controller|Drive|\
     Relay|Probe|Transformer|Actuator|Chassis|Rack|Processor|Boiler|Chiller|Gearbox|Bearing|Unit|Panel|Reactor|Tank|\
     Conveyor|Robot|Printer|Scanner|Modem|Antenna|Encoder|Thermostat|Heater|Fan|Filter";

/// Last words of the names of organisations without a legal form.
pub(super) const ORGANISATION_HEADS: &str = "University|Institute|Foundation|Agency|Ministry|Commission|Committee|Consortium|Association|Council|Department|\
     Hospital|Bank|Laboratory|Laboratories|Group|Holdings|Authority|Society|Union|Academy|College|Universität|\
     Hochschule|Institut|Stiftung|Ministerium|Behörde|Verband|Gesellschaft";

/// Words in capitals that stress, warn or connect, and name nothing.
const NO_TERMS: &str = "\
    THE AND NOT FOR ARE BUT ALL ANY CAN MAY NOTE TIP WARNING CAUTION IMPORTANT TODO FIXME OK YES NO TRUE FALSE NULL AS IS IN \
    ON OF OR TO BY IF IT AT AN BE DO SO UP WE VS PDF HTML URL WWW MUST SHALL SHOULD ONLY NEVER ALWAYS WITH FROM THIS THAT \
    USA UK EU AM PM AD BC CEO CTO CFO ID FAQ ETC II III IV VI VII VIII IX XI";

/// First words that make no part of a name.
const NO_LEADS: &str = "\
    a an the this that these those each every any all no some such its their our your his her my if when while where for \
    from in on at of to by with and or but as is are was were be see use using then also both either neither one two three \
    first second new old note not only other another same different default main der die das ein eine dieser diese dieses \
    im am vom zum zur mit und oder bei für von aus auf";

/// Last parts of names with dots that are files.
const EXTENSIONS: &str = "\
    conf cfg ini yaml yml json toml xml properties env log txt sql html htm md py rs c h cpp java js ts sh bat exe dll so \
    pl rb go csv pdf docx xlsx pptx odt";

/// Last parts of names with dots that are hosts, or abbreviations.
const NO_SETTINGS: &str = "com org net io de edu gov uk eu ch at fr dev info etc vs";

/// All known names with their kinds.
pub(super) fn known() -> impl Iterator<Item = (&'static str, Kind)> {
    SOFTWARE.split_whitespace().map(|name| (name, Kind::Software))
}

pub(super) fn is_no_term(word: &str) -> bool {
    NO_TERMS.split_whitespace().any(|known| known == word)
}

pub(super) fn is_no_lead(word: &str) -> bool {
    let lower = word.to_lowercase();
    NO_LEADS.split_whitespace().any(|known| known == lower)
}

pub(super) fn is_extension(part: &str) -> bool {
    EXTENSIONS.split_whitespace().any(|known| known == part)
}

pub(super) fn is_no_setting(part: &str) -> bool {
    NO_SETTINGS.split_whitespace().any(|known| known == part)
}
