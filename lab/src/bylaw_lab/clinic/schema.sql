-- The clinic's database. A table is an entity and a column is a field of it.
-- The comment after a column gives its type where SQLite has none of that name:
--   boolean   0 or 1                       (tools show true and false)
--   enum      one of the words listed
--   date      2025-03-12
--   datetime  2025-03-12T09:00:00          (local time of the clinic)
--   money     text with two decimals, 15.00
--   integer, string
--   list      JSON text                    (tools show the list itself)
-- No column is ever null.

CREATE TABLE Patient (
  patient_id TEXT PRIMARY KEY,          -- string, P001
  name TEXT NOT NULL,                   -- string
  birth_date TEXT NOT NULL,             -- date
  phone TEXT NOT NULL,                  -- string
  email TEXT NOT NULL,                  -- string
  status TEXT NOT NULL,                 -- enum: active, suspended, discharged
  membership_id TEXT NOT NULL,          -- string, the Membership this record points to
  primary_clinician_id TEXT NOT NULL,   -- string, a Clinician
  balance_due TEXT NOT NULL,            -- money
  payment_plan INTEGER NOT NULL,        -- boolean
  guardian_on_file INTEGER NOT NULL,    -- boolean
  identity_checked INTEGER NOT NULL,    -- boolean
  contact_confirmed INTEGER NOT NULL,   -- boolean
  hardship INTEGER NOT NULL,            -- boolean
  booked_this_week INTEGER NOT NULL,    -- integer
  late_waivers_used INTEGER NOT NULL    -- integer
) STRICT;

CREATE TABLE Membership (
  membership_id TEXT PRIMARY KEY,       -- string, M001
  patient_id TEXT NOT NULL,             -- string
  tier TEXT NOT NULL,                   -- enum: gold, silver, standard
  status TEXT NOT NULL,                 -- enum: active, paused, lapsed
  since TEXT NOT NULL                   -- date
) STRICT;

CREATE TABLE Clinician (
  clinician_id TEXT PRIMARY KEY,        -- string, C01
  name TEXT NOT NULL,                   -- string
  specialty TEXT NOT NULL,              -- enum: family, cardiology, dermatology, physiotherapy, psychiatry
  accepts_new INTEGER NOT NULL,         -- boolean
  licence TEXT NOT NULL                 -- enum: active, restricted, expired
) STRICT;

CREATE TABLE Slot (
  slot_id TEXT PRIMARY KEY,             -- string, S0001
  clinician_id TEXT NOT NULL,           -- string
  starts_at TEXT NOT NULL,              -- datetime
  kind TEXT NOT NULL,                   -- enum: in_person, telehealth
  status TEXT NOT NULL                  -- enum: open, held, taken, blocked
) STRICT;

CREATE TABLE Appointment (
  appointment_id TEXT PRIMARY KEY,      -- string, A0001
  patient_id TEXT NOT NULL,             -- string
  slot_id TEXT NOT NULL,                -- string
  clinician_id TEXT NOT NULL,           -- string
  starts_at TEXT NOT NULL,              -- datetime
  specialist INTEGER NOT NULL,          -- boolean
  status TEXT NOT NULL,                 -- enum: booked, confirmed, completed, cancelled, no_show
  copay TEXT NOT NULL,                  -- money
  late_fee TEXT NOT NULL,               -- money
  times_moved INTEGER NOT NULL,         -- integer
  moved_by_clinic INTEGER NOT NULL      -- boolean, whether the clinic itself made the last move
) STRICT;

CREATE TABLE Referral (
  referral_id TEXT PRIMARY KEY,         -- string, R001
  patient_id TEXT NOT NULL,             -- string
  specialty TEXT NOT NULL,              -- enum: cardiology, dermatology, physiotherapy, psychiatry
  status TEXT NOT NULL,                 -- enum: active, used, withdrawn
  expires_on TEXT NOT NULL              -- date
) STRICT;

CREATE TABLE Consent (
  patient_id TEXT NOT NULL,             -- string
  kind TEXT NOT NULL,                   -- enum: telehealth, psychiatric_care, psychiatric_release, data_sharing
  status TEXT NOT NULL,                 -- enum: given, withdrawn, missing
  PRIMARY KEY (patient_id, kind)
) STRICT;

CREATE TABLE Invoice (
  invoice_id TEXT PRIMARY KEY,          -- string, I0001
  patient_id TEXT NOT NULL,             -- string
  amount TEXT NOT NULL,                 -- money
  paid TEXT NOT NULL,                   -- money
  refunded TEXT NOT NULL,               -- money
  status TEXT NOT NULL,                 -- enum: unpaid, paid, waived
  issued_on TEXT NOT NULL,              -- date
  disputed INTEGER NOT NULL             -- boolean
) STRICT;

CREATE TABLE Prescription (
  prescription_id TEXT PRIMARY KEY,     -- string, X0001
  patient_id TEXT NOT NULL,             -- string
  medicine TEXT NOT NULL,               -- string
  controlled INTEGER NOT NULL,          -- boolean
  prescriber_id TEXT NOT NULL,          -- string, a Clinician
  status TEXT NOT NULL,                 -- enum: active, stopped
  expires_on TEXT NOT NULL,             -- date
  refills_left INTEGER NOT NULL,        -- integer
  last_filled_on TEXT NOT NULL          -- date
) STRICT;

CREATE TABLE Proxy (
  patient_id TEXT NOT NULL,             -- string
  person_id TEXT NOT NULL,              -- string, N001
  relation TEXT NOT NULL,               -- string
  scopes TEXT NOT NULL,                 -- list of: visits, billing, medication, psychiatric_notes
  valid_until TEXT NOT NULL,            -- date
  PRIMARY KEY (patient_id, person_id)
) STRICT;
