-- Schemas of all SQLite files that rigctl has written: run files and stores. `rigctl import` takes no other
-- (store/foreign.py). The first number of a schema is its version in the table rigctl_schema. The second number
-- counts what development versions wrote, and how they changed an older store. After a change of store/schema.py
-- a test fails until the new tables are here, under the name of a new schema. No line is removed. 6.2 is 6.1 with
-- the table that the first read of a run adds (store/kept_results.py).

-- in 1 2 3.1 3.2 3.3 4.1 4.2 4.3 5.1 5.2 5.3 5.4 5.5 5.6 5.7 5.8 5.9 6.1 6.2
CREATE TABLE rigctl_schema (
    version INTEGER NOT NULL,
    PRIMARY KEY (version)
);

-- in 1
CREATE TABLE runs (
    run VARCHAR(64) NOT NULL,
    title TEXT NOT NULL,
    status VARCHAR(16) NOT NULL,
    started_at FLOAT NOT NULL,
    ended_at FLOAT,
    "plan" JSON NOT NULL,
    versions JSON NOT NULL,
    PRIMARY KEY (run)
);

-- in 2 3.1 3.2 3.3 4.1 4.2 4.3 5.1 5.2 5.3 5.4 5.5 5.6 5.7 5.8 5.9 6.1 6.2
CREATE TABLE runs (
    run VARCHAR(64) NOT NULL,
    title TEXT NOT NULL,
    status VARCHAR(16) NOT NULL,
    started_at FLOAT NOT NULL,
    ended_at FLOAT,
    "plan" JSON NOT NULL,
    versions JSON NOT NULL,
    controller VARCHAR(255),
    PRIMARY KEY (run)
);

-- in 1 2 3.1 3.2 3.3 4.1 4.2 4.3 5.1 5.2 5.3 5.4 5.5 5.6 5.7 5.8 5.9 6.1 6.2
CREATE TABLE facts (
    run VARCHAR(64) NOT NULL,
    node VARCHAR(64) NOT NULL,
    facts JSON NOT NULL,
    PRIMARY KEY (run, node),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE CASCADE
);

-- in 1
CREATE TABLE repetitions (
    id INTEGER NOT NULL,
    run VARCHAR(64) NOT NULL,
    cell INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    status VARCHAR(16) NOT NULL,
    reason TEXT,
    started_at FLOAT NOT NULL,
    wall_s FLOAT NOT NULL,
    window_start_ns BIGINT,
    window_end_ns BIGINT,
    start_skew_us FLOAT,
    clock_error_us FLOAT,
    nodes JSON NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE CASCADE
);

-- in 2
CREATE TABLE repetitions (
    id INTEGER NOT NULL,
    run VARCHAR(64) NOT NULL,
    cell INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    status VARCHAR(16) NOT NULL,
    reason TEXT,
    started_at FLOAT NOT NULL,
    wall_s FLOAT NOT NULL,
    window_start_ns BIGINT,
    window_end_ns BIGINT,
    start_skew_us FLOAT,
    clock_error_us FLOAT,
    nodes JSON NOT NULL,
    goodput_median_bps FLOAT,
    counters_missing JSON,
    PRIMARY KEY (id),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE CASCADE
);

-- in 3.1 3.2 4.2 4.3 5.2 5.3 5.5 5.6 5.8 5.9
CREATE TABLE repetitions (
    id INTEGER NOT NULL,
    run VARCHAR(64) NOT NULL,
    cell INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    status VARCHAR(16) NOT NULL,
    reason TEXT,
    started_at FLOAT NOT NULL,
    wall_s FLOAT NOT NULL,
    window_start_ns BIGINT,
    window_end_ns BIGINT,
    start_skew_us FLOAT,
    clock_error_us FLOAT,
    nodes JSON NOT NULL,
    goodput_median_bps FLOAT,
    counters_missing JSON,
    rate_bps BIGINT,
    PRIMARY KEY (id),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE CASCADE
);

-- in 3.3 4.1 5.1 5.4 5.7 6.1 6.2
CREATE TABLE repetitions (
    id INTEGER NOT NULL,
    run VARCHAR(64) NOT NULL,
    cell INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    status VARCHAR(16) NOT NULL,
    reason TEXT,
    started_at FLOAT NOT NULL,
    wall_s FLOAT NOT NULL,
    window_start_ns BIGINT,
    window_end_ns BIGINT,
    start_skew_us FLOAT,
    clock_error_us FLOAT,
    nodes JSON NOT NULL,
    goodput_median_bps FLOAT,
    counters_missing JSON,
    rate_bps BIGINT,
    captures JSON,
    PRIMARY KEY (id),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE CASCADE
);

-- in 1 2 3.1 3.2 3.3 4.1 4.2 4.3 5.1 5.2 5.3 5.4 5.5 5.6 5.7 5.8 5.9 6.1 6.2
CREATE INDEX repetitions_of_run ON repetitions (run, id);

-- in 1 2 3.1 4.2 5.2 5.5 5.8
CREATE TABLE flows (
    repetition_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    source VARCHAR(64) NOT NULL,
    destination VARCHAR(64) NOT NULL,
    direction VARCHAR(16) NOT NULL,
    number INTEGER NOT NULL,
    bytes BIGINT,
    retransmits BIGINT,
    sender JSON,
    receiver JSON,
    sender_series BLOB,
    receiver_series BLOB,
    PRIMARY KEY (repetition_id, position),
    FOREIGN KEY(repetition_id) REFERENCES repetitions (id) ON DELETE CASCADE
);

-- in 3.2 3.3 4.1 4.3 5.1 5.3 5.4 5.6 5.7 5.9 6.1 6.2
CREATE TABLE flows (
    repetition_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    source VARCHAR(64) NOT NULL,
    destination VARCHAR(64) NOT NULL,
    direction VARCHAR(16) NOT NULL,
    number INTEGER NOT NULL,
    bytes BIGINT,
    retransmits BIGINT,
    sender JSON,
    receiver JSON,
    sender_series BLOB,
    receiver_series BLOB,
    receiver_bins BLOB,
    PRIMARY KEY (repetition_id, position),
    FOREIGN KEY(repetition_id) REFERENCES repetitions (id) ON DELETE CASCADE
);

-- in 2 3.1 3.2 3.3 4.1 4.2 4.3 5.1 5.2 5.3 5.4 5.5 5.6 5.7 5.8 5.9 6.1 6.2
CREATE TABLE counters (
    repetition_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    switch VARCHAR(64) NOT NULL,
    port VARCHAR(255) NOT NULL,
    source VARCHAR(16) NOT NULL,
    series BLOB NOT NULL,
    PRIMARY KEY (repetition_id, position),
    FOREIGN KEY(repetition_id) REFERENCES repetitions (id) ON DELETE CASCADE
);

-- in 4.1 4.2 4.3 5.1 5.2 5.3 5.4 5.5 5.6 5.7 5.8 5.9 6.1 6.2
CREATE TABLE probes (
    repetition_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    source VARCHAR(64) NOT NULL,
    destination VARCHAR(64) NOT NULL,
    direction VARCHAR(16) NOT NULL,
    started_ns BIGINT NOT NULL,
    series BLOB NOT NULL,
    PRIMARY KEY (repetition_id, position),
    FOREIGN KEY(repetition_id) REFERENCES repetitions (id) ON DELETE CASCADE
);

-- in 5.1 5.2 5.3 5.4 5.5 5.6 5.7 5.8 5.9 6.1 6.2
CREATE TABLE tags (
    run VARCHAR(64) NOT NULL,
    name VARCHAR(64) NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, name),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE CASCADE
);

-- in 5.1 5.2 5.3 5.4 5.5 5.6 5.7 5.8 5.9 6.1 6.2
CREATE TABLE accepted (
    run VARCHAR(64) NOT NULL,
    accepted_at FLOAT NOT NULL,
    who TEXT NOT NULL,
    because TEXT NOT NULL,
    PRIMARY KEY (run),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE CASCADE
);

-- in 5.1 5.2 5.3
CREATE TABLE nights (
    scenario VARCHAR(255) NOT NULL,
    rig VARCHAR(255) NOT NULL,
    due_at FLOAT NOT NULL,
    began_at FLOAT,
    ended_at FLOAT,
    outcome VARCHAR(16),
    run VARCHAR(64),
    reason TEXT,
    PRIMARY KEY (scenario, rig, due_at),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE SET NULL
);

-- in 5.4 5.5 5.6
CREATE TABLE nights (
    scenario VARCHAR(255) NOT NULL,
    rig VARCHAR(255) NOT NULL,
    due_at FLOAT NOT NULL,
    began_at FLOAT,
    ended_at FLOAT,
    outcome VARCHAR(16),
    run VARCHAR(64),
    reason TEXT,
    unmet JSON NOT NULL,
    news TEXT,
    next_due_at FLOAT,
    PRIMARY KEY (scenario, rig, due_at),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE SET NULL
);

-- in 5.7 5.8 5.9
CREATE TABLE nights (
    scenario VARCHAR(255) NOT NULL,
    rig VARCHAR(255) NOT NULL,
    due_at FLOAT NOT NULL,
    began_at FLOAT,
    ended_at FLOAT,
    outcome VARCHAR(16),
    run VARCHAR(64),
    reason TEXT,
    unmet TEXT NOT NULL,
    news TEXT,
    next_due_at FLOAT,
    PRIMARY KEY (scenario, rig, due_at),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE SET NULL
);

-- in 6.1 6.2
CREATE TABLE nights (
    scenario VARCHAR(255) NOT NULL,
    rig VARCHAR(255) NOT NULL,
    due_at FLOAT NOT NULL,
    began_at FLOAT,
    ended_at FLOAT,
    outcome VARCHAR(16),
    run VARCHAR(64),
    reason TEXT,
    in_part BOOLEAN NOT NULL,
    unmet TEXT NOT NULL,
    news TEXT,
    next_due_at FLOAT,
    PRIMARY KEY (scenario, rig, due_at),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE SET NULL
);

-- in 6.1 6.2
CREATE TABLE night_figures (
    run VARCHAR(64) NOT NULL,
    rules INTEGER NOT NULL,
    figures TEXT NOT NULL,
    PRIMARY KEY (run),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE CASCADE
);

-- in 6.2
CREATE TABLE kept_results (
    run VARCHAR(64) NOT NULL,
    part VARCHAR(16) NOT NULL,
    stamp VARCHAR(64) NOT NULL,
    packed BLOB NOT NULL,
    PRIMARY KEY (run, part),
    FOREIGN KEY(run) REFERENCES runs (run) ON DELETE CASCADE
);
