;;; A whole conversation by Eglot, with the settings that docs/editors.md shows. Prints one JSON object a step.  -*- lexical-binding: t -*-
;; usage: emacs --batch -l SETTINGS -l conversation.el, with the file in $FILE, the inputs in $STALLS and $ASKS.
;; The user's answers are a completing-read-function; what the settings do is left as it is, and only watched.

(setq locale-coding-system 'utf-8
      ;; The machine may be busy.
      eglot-sync-connect t
      jsonrpc-default-request-timeout 30)
(defvar events nil "What came of runs, newest first.")
(defvar progress nil)
(defvar messages nil)
(defvar errors nil)
(defvar questions nil)
(defvar answers nil "What the user answers, in turn; t: C-g.")
(setq last-nonmenu-event ?x) ; a key, no mouse

(defun say (step value)
  (let ((line (json-serialize (list :step step :value value) :null-object nil :false-object :json-false)))
    (princ (concat (decode-coding-string line 'utf-8) "\n"))))

(defun await (what condition)
  (with-timeout (20 (error "Waited in vain for %s" what))
    (while (not (funcall condition))
      (accept-process-output nil 0.005)
      ;; Nothing but a command loop is ever idle, and there is none.
      (mapc #'timer-event-handler (copy-sequence timer-idle-list)))))

(cl-defmethod eglot-handle-notification ((_server sidecar-server) (_method (eql run/event)) &rest event)
  (push event events))
(cl-defmethod eglot-handle-notification :before
  ((_server sidecar-server) (_method (eql $/progress)) &key value &allow-other-keys)
  (push value progress))
(cl-defmethod eglot-handle-notification :before
  ((_server sidecar-server) (_method (eql window/showMessage)) &rest params)
  (push params messages)
  (when (eql (plist-get params :type) 1) (push params errors)))
(setq completing-read-function
      (lambda (prompt collection &rest _)
        (push (vconcat (list (concat (text-of "*sidecar asks*") prompt)) (mapcar #'car collection)) questions)
        (let ((answer (pop answers)))
          (if (eq answer t) (signal 'quit nil) answer))))

;; Eglot kills what it has told to exit; left alone, it ends by itself.
(advice-add 'jsonrpc-shutdown :before
            (lambda (connection &rest _) (await "the end" (lambda () (not (jsonrpc-running-p connection))))))

(defun request (method &rest params)
  "Send a request; what is returned waits for the result."
  (let (done result)
    (jsonrpc-async-request (eglot-current-server) method params
                           :timeout nil
                           :success-fn (lambda (it) (setq done t result it))
                           :error-fn (lambda (it) (error "%s: %S" method it)))
    (lambda ()
      (await method (lambda () done))
      result)))

(defun run (input)
  (request :run :sessionId "emacs" :input input))

(defun shown (text)
  (lambda () (cl-some (lambda (it) (string-match-p (regexp-quote text) (or (plist-get it :message) ""))) messages)))

(defun answered (it)
  "What a run says whose call needs consent, with the user's answer."
  (setq answers (list it))
  (plist-get (funcall (run (getenv "ASKS"))) :text))

(defun text-of (buffer)
  (if (get-buffer buffer) (with-current-buffer buffer (buffer-string)) ""))

(find-file (getenv "FILE"))
(call-interactively #'eglot)
(goto-char (point-max))
(insert "unsaved, 😋")
(goto-char (point-min))
(insert "first: ")
(sidecar-state)
(await "the state" (shown "1 open documents"))

;; The user's own commands.
(sidecar-run "hello there")
(await "the answer" (shown "You said: hello there"))
(say "message" (car messages))
(sidecar-run (getenv "STALLS"))
(await "the beginning" (lambda () (equal (plist-get (car progress) :message) "Once upon a time")))
(sidecar-cancel)
(await "the end" (shown "(cancelled)"))
(say "progress" (vconcat (mapcar (lambda (it) (plist-get it :kind)) (reverse progress))))
(say "answers" (text-of "*sidecar*"))
(say "silent" (if events :json-false t))

;; Explain and fix, by Eglot's own command.
(defun act (beg end &rest its)
  "What is asked and said when the user's answers are ITS, about a part of the buffer; and the buffer."
  (setq answers its messages nil questions nil)
  (eglot-code-actions beg end nil t)
  (await "the answer" (lambda () messages))
  (vector (vconcat (reverse questions)) (plist-get (car messages) :message)
          (buffer-substring-no-properties (point-min) (point-max))))

(say "explain" (act (point) nil "Explain with agent"))
(say "unmended" (act (point-min) (line-end-position) "Fix with agent" t))
(say "mended" (act (point-min) (line-end-position) "Fix with agent" "1 Allow once"))

;; The sidecar's own methods, over the same connection.
(say "createSession" (plist-get (plist-get (funcall (request :createSession :sessionId "emacs")) :session) :cwd))
(let ((hello (funcall (run "hello"))))
  (say "run" (plist-get hello :text))
  (say "explainRun" (funcall (request :explainRun :sessionId "emacs" :runId (plist-get hello :runId)))))
(say "allowed" (answered "1 Allow once"))
(say "dismissed" (answered t))
(say "rejected" (answered ""))
(say "question" (car questions))
(let ((story (run (getenv "STALLS"))))
  (await "the run" (lambda () (equal (plist-get (car events) :type) "message.delta")))
  (funcall (request :cancelRun :sessionId "emacs"))
  (say "cancelled" (plist-get (funcall story) :status)))
(say "live" (vconcat (reverse events)))

;; Another sidecar, and all of it again.
(defun ended (server)
  (process-exit-status (jsonrpc--process server)))
(setq events nil messages nil)
(let ((first (eglot-current-server)))
  (eglot-shutdown first nil 30 t)
  (say "exit" (ended first)))
(call-interactively #'eglot)
(sidecar-state)
(await "the state" (shown "no session yet"))
(let ((resumed (funcall (request :resumeSession :sessionId "emacs" :replayFrom '(:type "start")))))
  (await "the replay" (lambda () (equal (plist-get (car events) :seq) (plist-get resumed :lastSeq)))))
(say "replayed" (vconcat (reverse events)))
(let ((second (eglot-current-server)))
  (eglot-shutdown second nil 30 t)
  (say "exitAgain" (ended second))
  (say "stderr" (text-of (jsonrpc-stderr-buffer second)))
  (say "log" (text-of (jsonrpc-events-buffer second))))
(say "errors" (vconcat errors))
(say "warnings" (text-of "*Warnings*"))
(say "messages" (text-of "*Messages*"))
(set-buffer-modified-p nil)
