"""What `--log-dirs` of show and of apply both say."""

NO_LOG_DIR = "warning: no log dir is named: no new replica goes to a broker known to have several (KR827)"
